"""What invokes functions without a caller: streams, queues and schedules, by Lambda's documented rules."""
