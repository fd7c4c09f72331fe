"""Rewards of a training: functions of a judged turn, by name. A plug-in may add one."""
