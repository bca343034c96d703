"""Atomic files and folders, temporary files, and the archive of models and policies."""

from largesse.io.archive import ARRAYS as ARRAYS
from largesse.io.archive import MANIFEST as MANIFEST
from largesse.io.archive import archive_error as archive_error
from largesse.io.archive import expected_content as expected_content
from largesse.io.archive import read_archive as read_archive
from largesse.io.archive import write_archive as write_archive
from largesse.io.folders import Batch as Batch
from largesse.io.folders import atomic_file as atomic_file
from largesse.io.folders import atomic_folder as atomic_folder
from largesse.io.folders import can_recover as can_recover
from largesse.io.folders import hold_folder as hold_folder
from largesse.io.folders import refuse_foreign as refuse_foreign
from largesse.io.folders import write_together as write_together
from largesse.io.paths import Target as Target
from largesse.io.paths import is_mounted as is_mounted
from largesse.io.paths import resolve_file as resolve_file
from largesse.io.paths import resolve_folder as resolve_folder
from largesse.io.paths import where_is as where_is
from largesse.io.shapes import check_shape as check_shape
from largesse.io.tempfiles import Scratch as Scratch
from largesse.io.tempfiles import private_folder as private_folder
from largesse.io.tempfiles import scratch_file as scratch_file
from largesse.io.tempfiles import scratch_folder as scratch_folder
