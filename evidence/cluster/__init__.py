"""Fits on partitions, measured: the parts of an estimate, little memory, what is lost."""
