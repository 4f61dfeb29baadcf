import ArgumentParser

/// `hopctl mapping …`: commands about mapping models.
struct MappingCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mapping", abstract: "Shows and checks mapping models, and writes an inferred one.",
    subcommands: [MappingShowCommand.self, MappingLintCommand.self, MappingInferCommand.self])
}
