import ArgumentParser
import Diagnostics
import MappingModel
import SystemPackage

/// `hopctl mapping lint FILE --models …`.
struct MappingLintCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "lint", abstract: "Check a mapping model for data loss and dead rules",
    discussion: """
      Finds entity mappings without effect (dead-mapping), properties of the old version that no expression reads \
      (dropped-value), entities without an entity mapping (unmapped-entity), policies that never run (unused-policy), \
      and lookups that never find an object (empty-lookup) or only objects that the relationship cannot contain \
      (unfit-lookup). Requires no store; `hopctl plan` counts the affected rows.

      Exit status: 0 if hopd can run the mapping model; 65 if it cannot, if no hop uses the mapping model, or with \
      --strict if there is any finding.
      """)

  @Argument(help: "Mapping model (.xcmappingmodel, .cdm, .hopmap.toml) or its directory", completion: .file())
  var file: String

  @Option(
    name: .customLong("models"),
    help: "Model with both versions (.xcdatamodeld, .momd), single versions, or a directory; repeatable",
    completion: .file())
  var models: [String] = []

  @Option(
    name: .customLong("mappings"), help: "Other mapping models of the same hop; repeatable", completion: .file())
  var mappings: [String] = []

  @Option(
    name: .customLong("policy"),
    help: ArgumentHelp(
      "Policy class that has a program; repeatable",
      valueName: "class[=command]"))
  var policies: [String] = []

  @Flag(help: "Exit with 65 if there is any finding")
  var strict = false

  @OptionGroup(title: "Swift source options") var source: SourceOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func execute() throws {
    let subject = try MappingSubject(file: file, models: models, mappings: mappings, source.reader)
    let mapping = subject.mapping
    let bound = policies.map { String($0.prefix { $0 != "=" }) }
    let lint = MappingLint(
      mapping, beside: subject.others, source: subject.source, destination: subject.destination, policies: bound)
    // The findings already report dead entity mappings, so these warnings are not repeated.
    output.warn(subject.warnings.filter { $0.code != .deadMapping || !subject.serves && $0.place.entity != nil })
    var errors = subject.findings
    if !subject.serves { errors = subject.warnings.filter { $0.code == .deadMapping }.prefix(1) + errors }
    try report(lint.findings, errors, of: subject)
    let findings = lint.findings.map { finding -> JSONObject in
      [
        "kind": finding.kind.rawValue, "mapping": finding.mapping, "entity": finding.entity,
        "property": finding.property, "message": finding.message, "hint": finding.hint,
      ]
    }
    try output.object([
      "name": mapping.name, "path": mapping.path.string, "sourceVersion": mapping.sourceVersion,
      "destinationVersion": mapping.destinationVersion, "inUse": subject.serves, "findings": findings,
      // Why hopd cannot run the mapping model; empty if it can.
      "errors": errors.map(\.json),
    ])
    if !errors.isEmpty || strict && !lint.findings.isEmpty { throw Finished(status: .dataError) }
  }

  private func report(
    _ findings: [MappingLint.Finding], _ errors: [HopdError], of subject: MappingSubject
  ) throws(HopdError) {
    let mapping = subject.mapping
    try output.line(
      "\(mapping.name.printableLine): \(mapping.sourceVersion.printableLine) → "
        + "\(mapping.destinationVersion.printableLine)"
        + (subject.serves ? "" : " (the closest versions; no hop uses it)") + ", "
        + (findings.isEmpty
          ? "no findings" : MessageFormatter.count(findings.count, "finding", "findings")))
    for finding in findings {
      let place = [finding.mapping.map { "“\($0)”" }, finding.entity, finding.property].compactMap(\.self)
      try output.line("")
      try output.line("\(finding.kind.rawValue)  \(place.joined(separator: ", ").printableLine)")
      try output.line("  \(finding.message.printableLine)")
      try output.line("  → \(finding.hint.printableLine)")
    }
    for error in errors { ErrorReport.report(error) }
  }
}
