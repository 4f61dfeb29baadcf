import ArgumentParser

/// `hopctl mapping …`: what mapping models say.
struct MappingCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mapping", abstract: "Shows mapping models, and writes what is inferred as one.",
    subcommands: [MappingShowCommand.self, MappingInferCommand.self])
}
