"""What requests and responses consist of, for validation and for the OpenAPI document."""
