// Values of mapping models that begin with a bare key, read as keys of the source object, each with a remark.

import Diagnostics
import Expressions
import ManagedObjectModel

extension ExplicitMapping {
  /// The same with `$source` before every bare key path, and a remark for each.
  func namingSources(_ source: ManagedObjectModel) -> (mapping: ExplicitMapping, remarks: [HopdError]) {
    var remarks: [HopdError] = []
    let entities = entityMappings.map { $0.namingSources(source, &remarks, file: self) }
    let mapping = ExplicitMapping(
      name: name, path: path, sourceVersion: sourceVersion, destinationVersion: destinationVersion,
      entityMappings: entities)
    return (mapping, remarks)
  }
}

extension ExplicitEntityMapping {
  fileprivate func namingSources(
    _ source: ManagedObjectModel, _ remarks: inout [HopdError], file: ExplicitMapping
  ) -> ExplicitEntityMapping {
    func named(_ property: String?, _ body: (inout BareKeyPaths) -> Void) {
      var paths = BareKeyPaths(model: source, source: self.source)
      body(&paths)
      for path in paths.found {
        remarks.append(
          HopdError(
            .mappingRemark,
            "the value “\(path)” is read as “$source.\(path)”: no document says what a key alone is a property of",
            at: Place(file: file.path, entity: destination ?? self.source, property: property),
            hint: "write $source.\(path)"))
      }
    }
    func named(_ properties: [ExplicitPropertyMapping]) -> [ExplicitPropertyMapping] {
      properties.map { property in
        guard let value = property.value else { return property }
        var result = value
        named(property.name) { paths in
          switch value {
          case .expression(let node): result = .expression(paths.named(node))
          case .grouped(let mapping, let keys):
            var nodes: [ExpressionNode] = []
            for key in keys { nodes.append(paths.named(key)) }
            result = .grouped(mapping: mapping, keys: nodes)
          case .matching(let entity, let attribute, let key):
            result = .matching(entity: entity, attribute: attribute, key: paths.named(key))
          }
        }
        return ExplicitPropertyMapping(name: property.name, value: result)
      }
    }
    var grouping = grouping
    named(nil) { paths in grouping = self.grouping.named(&paths) }
    return ExplicitEntityMapping(
      name: name, type: type, source: self.source, destination: destination, policy: policy, userInfo: userInfo,
      filter: filter, attributes: named(attributes), relationships: named(relationships), grouping: grouping,
      deadness: deadness)
  }
}

extension SourceGrouping {
  fileprivate func named(_ paths: inout BareKeyPaths) -> SourceGrouping {
    func all(_ nodes: [ExpressionNode], _ paths: inout BareKeyPaths) -> [ExpressionNode] {
      var result: [ExpressionNode] = []
      for node in nodes { result.append(paths.named(node)) }
      return result
    }
    func kept(_ rule: KeepRule, _ paths: inout BareKeyPaths) -> KeepRule {
      if case .latest(let node) = rule { .latest(paths.named(node)) } else { rule }
    }
    switch self {
    case .each: return self
    case .distinctBy(let nodes, let keep): return .distinctBy(all(nodes, &paths), keep: kept(keep, &paths))
    case .deduplicate(let nodes, let keep): return .deduplicate(by: all(nodes, &paths), keep: kept(keep, &paths))
    case .expand(let node, let entity): return .expand(paths.named(node), entity: entity)
    }
  }
}
