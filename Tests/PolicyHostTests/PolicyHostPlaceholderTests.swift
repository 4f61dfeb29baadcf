import Testing

@Suite struct PolicyHostPlaceholderTests {}
