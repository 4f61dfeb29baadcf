// Mapping models beside the models: those that were named, and those that lie in folders of models.

import Diagnostics
import SystemPackage

extension ModelCatalog {
  /// Reads mapping models that were named, and those in folders among `models`.
  package mutating func loadMappings(_ named: [FilePath], beside models: [FilePath]) throws(HopdError) {}
}
