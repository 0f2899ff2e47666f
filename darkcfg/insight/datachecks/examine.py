"""All checks of a data set together."""

from __future__ import annotations

from dataclasses import dataclass

from darkcfg.data.dataset import Dataset
from darkcfg.insight.datachecks.balance import ClassBalance, balance_findings, class_balance
from darkcfg.insight.datachecks.channels import ChannelContent, channel_content, channel_findings
from darkcfg.insight.datachecks.duplicates import Duplicates, duplicate_findings, find_duplicates
from darkcfg.insight.datachecks.labels import LabelChecks, check_labels
from darkcfg.insight.finding import Finding


@dataclass(frozen=True)
class DataReport:
    """What was measured of a data set."""

    balance: ClassBalance
    channels: ChannelContent
    duplicates: Duplicates
    labels: LabelChecks

    def findings(self) -> tuple[Finding, ...]:
        """Everything that is wrong or worth knowing, in no particular order."""
        return (
            *self.labels.findings(),
            *balance_findings(self.balance),
            *channel_findings(self.channels),
            *duplicate_findings(self.duplicates),
        )


def examine(data: Dataset) -> DataReport:
    """Look at a data set: a few seconds for 60,000 images.

    Raises DataError where images lie in files and one that is looked at is broken.
    """
    return DataReport(class_balance(data), channel_content(data), find_duplicates(data), check_labels(data))
