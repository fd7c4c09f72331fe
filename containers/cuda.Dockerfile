# tilewright with CUDA: docker build -f containers/cuda.Dockerfile -t tilewright-cuda .
# CUDA candidates need nvcc, so the image is one for development.
FROM nvidia/cuda:13.0.2-devel-ubuntu24.04

RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ make python3 python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*

ARG EXTRAS="judge,triton,cpp,serve,client,mcp"

# No constraints: they name the CPU build of torch that the tests use.
WORKDIR /opt/tilewright
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
COPY docs/explanation/glossary.md ./docs/explanation/
RUN python3 -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir ".[${EXTRAS}]"
ENV PATH="/opt/venv/bin:${PATH}"

# Builds, calibrations and the tasks of a server; a volume keeps them.
ENV TILEWRIGHT_HOME=/data
WORKDIR /work
EXPOSE 8477
ENTRYPOINT ["tilewright"]
CMD ["doctor"]
