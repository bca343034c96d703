"""A campaign on Spark, for tables that one machine cannot hold.

`Spark` is the engine: it reads and checks rows where they are, scores them on the executors with the sealed policy, and
lets the executors write the plan. What executors run lies in `tasks`: functions of this package that get bytes and
numbers, never objects of a user.
"""

from largesse.pipeline.on_spark.engine import Spark as Spark
from largesse.pipeline.on_spark.session import ClusterError as ClusterError
from largesse.pipeline.on_spark.session import check_parts as check_parts
from largesse.pipeline.on_spark.session import open_session as open_session
from largesse.pipeline.on_spark.start import open_engine as open_engine
from largesse.pipeline.on_spark.start import spark as spark
