"""What tests share: the service on an in-process AWS, called as API Gateway calls it."""
