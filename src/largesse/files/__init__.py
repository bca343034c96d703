"""Files that are never half there, and the one archive that models and policies are saved in."""

from largesse.files.archive import ARRAYS as ARRAYS
from largesse.files.archive import MANIFEST as MANIFEST
from largesse.files.archive import archive_error as archive_error
from largesse.files.archive import expected_content as expected_content
from largesse.files.archive import read_archive as read_archive
from largesse.files.archive import write_archive as write_archive
from largesse.files.atomic import Batch as Batch
from largesse.files.atomic import atomic_file as atomic_file
from largesse.files.atomic import atomic_folder as atomic_folder
from largesse.files.atomic import can_recover as can_recover
from largesse.files.atomic import fill_folder as fill_folder
from largesse.files.atomic import hold_folder as hold_folder
from largesse.files.atomic import refuse_foreign as refuse_foreign
from largesse.files.atomic import write_together as write_together
from largesse.files.places import Target as Target
from largesse.files.places import resolve_file as resolve_file
from largesse.files.places import resolve_folder as resolve_folder
from largesse.files.places import where_is as where_is
from largesse.files.scratch import Scratch as Scratch
from largesse.files.scratch import private_folder as private_folder
from largesse.files.scratch import scratch_file as scratch_file
from largesse.files.scratch import scratch_folder as scratch_folder
from largesse.files.shapes import check_shape as check_shape
from largesse.files.work import find_work as find_work
from largesse.files.work import keep_work as keep_work
from largesse.files.work import open_work as open_work
