import Testing

@testable import PolicyHost

