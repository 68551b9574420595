"""A task's rounds as points of MLflow and TensorBoard, from public events alone."""
