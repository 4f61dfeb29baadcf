import Testing

@testable import MigrationPolicy

