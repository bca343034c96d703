"""Campaigns on Spark, for tables larger than one machine.

`SparkEngine` is the engine: executors read, check and score customers, add up the sums of the price search, and write the plan; the
driver gets sums. Nothing but executors and a driver takes part: no shared disk, no pickled model.
"""

from largesse.pipeline.spark.session import ClusterError as ClusterError
from largesse.pipeline.spark.session import check_spark as check_spark
from largesse.pipeline.spark.session import open_spark_session as open_spark_session
from largesse.pipeline.spark.spark_engine import SparkEngine as SparkEngine
from largesse.pipeline.spark.spark_engine import open_engine as open_engine
from largesse.pipeline.spark.spark_engine import run_on_spark as run_on_spark
