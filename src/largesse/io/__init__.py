"""Files that are never half there, and the one archive that models and policies are saved in."""

from largesse.io.archive import ARRAYS as ARRAYS
from largesse.io.archive import MANIFEST as MANIFEST
from largesse.io.archive import archive_error as archive_error
from largesse.io.archive import expected_content as expected_content
from largesse.io.archive import read_archive as read_archive
from largesse.io.archive import write_archive as write_archive
from largesse.io.atomic import Batch as Batch
from largesse.io.atomic import atomic_file as atomic_file
from largesse.io.atomic import atomic_folder as atomic_folder
from largesse.io.atomic import can_recover as can_recover
from largesse.io.atomic import fill_folder as fill_folder
from largesse.io.atomic import hold_folder as hold_folder
from largesse.io.atomic import refuse_foreign as refuse_foreign
from largesse.io.atomic import write_together as write_together
from largesse.io.places import Target as Target
from largesse.io.places import is_mounted as is_mounted
from largesse.io.places import resolve_file as resolve_file
from largesse.io.places import resolve_folder as resolve_folder
from largesse.io.places import where_is as where_is
from largesse.io.scratch import Scratch as Scratch
from largesse.io.scratch import private_folder as private_folder
from largesse.io.scratch import scratch_file as scratch_file
from largesse.io.scratch import scratch_folder as scratch_folder
from largesse.io.shapes import check_shape as check_shape
