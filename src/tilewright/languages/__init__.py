"""Languages of candidates: detection, parsing of replies, build plans. No torch."""

from tilewright.languages.base import BuildPlan, Language
from tilewright.languages.built_in import BUILT_IN
from tilewright.languages.detect import detect, find_entry, main_first
from tilewright.languages.reply_parser import ParsedReply, parse_reply
from tilewright.languages.static_features import Sighting, StaticFeatures, static_features
from tilewright.languages.syntax import Unparseable

__all__ = [
    "BUILT_IN",
    "BuildPlan",
    "Language",
    "ParsedReply",
    "Sighting",
    "StaticFeatures",
    "Unparseable",
    "detect",
    "find_entry",
    "main_first",
    "parse_reply",
    "static_features",
]
