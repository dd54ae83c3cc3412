"""From settings and data to a fitted release: the one path that every fit takes."""
