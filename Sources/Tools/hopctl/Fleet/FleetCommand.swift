import ArgumentParser

/// `hopctl fleet …`: commands about many stores.
struct FleetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fleet", abstract: "Scan and migrate many stores",
    subcommands: [FleetScanCommand.self, FleetRunCommand.self, FleetReportCommand.self])
}
