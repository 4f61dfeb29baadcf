import ArgumentParser

/// `hopctl mapping …`: commands about mapping models.
struct MappingCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mapping", abstract: "Inspect, check and generate mapping models",
    subcommands: [MappingShowCommand.self, MappingLintCommand.self, MappingInferCommand.self])
}
