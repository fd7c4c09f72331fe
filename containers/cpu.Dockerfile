# tilewright without a GPU: docker build -f containers/cpu.Dockerfile -t tilewright .
FROM python:3.12-slim-trixie

# The judge compiles C++ candidates; ninja comes with the package.
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ make \
    && rm -rf /var/lib/apt/lists/*

# An index with CPU builds of torch saves gigabytes: --build-arg PIP_EXTRA_INDEX_URL=URL
ARG PIP_EXTRA_INDEX_URL=""
ARG EXTRAS="judge,triton,cpp,serve,client,mcp"

WORKDIR /opt/tilewright
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
COPY docs/explanation/glossary.md ./docs/explanation/
RUN pip install --no-cache-dir -c constraints.txt ".[${EXTRAS}]"

# Builds, calibrations and the tasks of a server; a volume keeps them.
ENV TILEWRIGHT_HOME=/data
WORKDIR /work
EXPOSE 8477
ENTRYPOINT ["tilewright"]
CMD ["doctor"]
