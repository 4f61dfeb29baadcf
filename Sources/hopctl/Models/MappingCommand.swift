import ArgumentParser

/// `hopctl mapping …`: what mapping models say.
struct MappingCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mapping", abstract: "Shows and checks mapping models, and writes an inferred one.",
    subcommands: [MappingShowCommand.self, MappingLintCommand.self, MappingInferCommand.self])
}
