"""Settings about how long old data is kept."""

from dataclasses import dataclass

from seckill.settings.setting import kept


@dataclass(frozen=True, kw_only=True)
class RetentionSettings:
    events_kept_days: int = kept(
        30, "How long events can be read from the feed; who reads on after an older one is told to begin anew."
    )
    letters_kept_days: int = kept(
        90, "How long letters are kept about which all is decided: written after all, or discarded."
    )
    lines_kept_days: int = kept(
        365, "How long lines and draws of rounds that are over are kept, with all entries; never shorter than events."
    )
    figures_kept_days: int = kept(
        90, "How long the charts of a sale can be looked back at, and alarms; to the second only where much happened."
    )
