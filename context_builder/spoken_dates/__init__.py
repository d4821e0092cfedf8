"""Words such as "yesterday" and "next Friday", and the dates that they mean."""

from context_builder.spoken_dates.spoken_dates import SpokenDate, dated, spoken_dates, undated, with_dates

__all__ = ["SpokenDate", "dated", "spoken_dates", "undated", "with_dates"]
