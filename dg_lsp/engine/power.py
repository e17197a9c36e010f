"""Power: whether this machine runs on its battery."""

import psutil


def on_battery() -> bool:
    """Return whether this machine runs on a battery; False where the system does not say."""
    sensors = getattr(psutil, "sensors_battery", None)
    battery = sensors() if sensors else None
    return battery is not None and battery.power_plugged is False
