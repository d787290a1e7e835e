"""Queues and gang schedulers: Kueue, Volcano, KAI, HAMi, YuniKorn, scheduler-plugins."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
