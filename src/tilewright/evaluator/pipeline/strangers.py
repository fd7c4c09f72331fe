"""Programs on a GPU that are no evaluations of this user, and the label that names them."""

from __future__ import annotations

from tilewright.evaluator.devices.device_processes import strangers
from tilewright.evaluator.devices.nvml import conditions, device_processes
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.records.codes import LabelName

OTHER_PROGRAM_BYTES = 1 << 30
"""Device memory in use from which another program must be running; an idle driver uses less."""
SHOWN_STRANGERS = 3
"""Processes of other programs that a label names, the largest first."""


def note_strangers(session: EvaluationSession, used_bytes: int) -> None:
    """Store how much of the memory in use belongs to other programs.

    Supervisors publish estimates, and only of what idles. So the driver's list of processes
    decides where there is one.
    """
    host, memory = session.host, session.memory
    siblings = sum(host.ledger.others().values()) if host.ledger else 0
    memory.strangers, memory.stranger_bytes = None, max(memory.others_bytes - siblings, 0)
    if host.ledger is not None and memory.stranger_bytes > OTHER_PROGRAM_BYTES:
        held = device_processes(host.device.uuid)
        # A sibling may have released memory before the driver made its list.
        now = conditions(host.device.uuid)
        used_bytes = min(used_bytes, (now.used_bytes if now else None) or used_bytes)
        memory.strangers = strangers(held, used_bytes, host.ledger.supervisors())
    if memory.strangers is not None:
        memory.stranger_bytes = memory.strangers.held_bytes


def label_strangers(session: EvaluationSession) -> None:
    """Label a program on the device that is no evaluation of this user."""
    found, memory = session.memory.before, session.memory
    if found is not None and memory.stranger_bytes > OTHER_PROGRAM_BYTES:
        busy = found.busy_percent or 0
        detail = f"{memory.stranger_bytes >> 20} MiB of its memory were in use before we began"
        seen = memory.strangers.seen[:SHOWN_STRANGERS] if memory.strangers else ()
        detail = "; ".join([f"{detail}, {busy} % busy", *seen])
        session.add_label(LabelName.DEVICE_SHARED, detail)
        session.context.emit("waiting", {"message": f"another program is on the device: {detail}"})
