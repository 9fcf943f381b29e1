"""Tables and buckets as template.yaml declares them, made in whatever AWS the client talks to."""
