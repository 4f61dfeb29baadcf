// MHWBookToBookPolicy, as Objective-C code of a well-known article on Core Data migrations has it, in Swift for hopd.
//
// It serves two hops and learns from the mapping's user info which one it is in: in the first, a book's author name
// becomes an Author that books share; in the second, a book's file URL becomes a File that belongs to the book and to a
// user.

import MigrationPolicy

final class MHWBookToBookPolicy: EntityMigrationPolicy {
  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: EntityMapping, manager: MigrationManager
  ) throws {
    switch mapping.userInfo["modelVersion"]?.string {
    case "2":
      let book = try copy(of: source, manager: manager)
      guard let name = try source.string(forKey: "authorName") else { return }
      try author(named: name, manager: manager).add([book], to: "books")
    case "3":
      let book = try copy(of: source, manager: manager)
      for sourceUser in try source.objects(forKey: "users") {
        let file = try manager.insertNewObject(forEntityName: "File")
        try file.setValue(source.value(forKey: "fileURL"), forKey: "fileURL")
        try file.setValue(book, forKey: "book")
        let userID = try sourceUser.value(forKey: "userId")
        try file.setValue(manager.fetch("User", where: "userId == %@", userID).last, forKey: "user")
      }
    default:
      try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    }
  }

  /// A book with all attributes that both versions have. The class made a new object; the standard one has the source's
  /// primary key, so that what an app kept of the old book means the new one.
  private func copy(of source: ManagedObject, manager: MigrationManager) throws -> ManagedObject {
    let book = try manager.insertStandardInstance(for: source)
    for name in source.attributeNames where book.has(name) {
      let value = try source.value(forKey: name)
      if !value.isNull { try book.setValue(value, forKey: name) }
    }
    return book
  }

  /// The author of this name, made when it is first wanted.
  private func author(named name: String, manager: MigrationManager) throws -> ManagedObject {
    let authors = manager.table("authors")
    if let known = try authors.object(for: .string(name)) { return known }
    let author = try manager.insertNewObject(forEntityName: "Author")
    try author.setValue(.string(name), forKey: "name")
    try authors.setObject(author, for: .string(name))
    return author
  }
}

PolicyProgram.run(["MHWBookToBookPolicy": MHWBookToBookPolicy.self])
