"""Pure folds: given state and a record, the next state and what to emit. No Kafka, no clocks."""
