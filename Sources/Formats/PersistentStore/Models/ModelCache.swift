// The copy of its model in a store's Z_MODELCACHE: a compiled model, compressed. hopd reads it as a source model if no
// model file is available, and writes it so that its stores are complete. It never decides a store's version: the
// hashes in the metadata do, and a cache that disagrees with them is stale.

import CZlib
import Diagnostics
import ManagedObjectModel
import SQLite

extension HopdError.Code {
  /// The copy of the model inside a store cannot be read.
  package static let modelCacheDamaged = HopdError.Code("model-cache-damaged", exit: .dataError)
  /// The copy of the model inside a store is of another version than the store.
  package static let modelCacheStale = HopdError.Code("model-cache-stale", exit: .dataError)
}

/// The form of Z_MODELCACHE.Z_CONTENT.
package enum ModelCache {
  /// The first framework version that keeps a model in its stores (docs/formats/store-layout.md, "Model cache").
  package static let firstFrameworkVersion: Int64 = 637
  /// Bytes of a model, compressed or not; the largest seen has 13 kilobytes.
  package static let maximumBytes = 16 << 20

  private static let hint =
    "pass its model with --models, the app's .momd or its source; the store itself may be intact"

  /// Compresses with raw DEFLATE of level 5, which gives the bytes that Apple's software writes
  /// (docs/formats/store-layout.md, "Model cache").
  package static func compress(_ bytes: [UInt8]) throws(HopdError) -> [UInt8] {
    var stream = z_stream()
    guard
      deflateInit2_(
        &stream, 5, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else { throw HopdError(.internalError, "zlib cannot be used") }
    defer { deflateEnd(&stream) }
    guard let count = UInt32(exactly: bytes.count),
      let bound = UInt32(exactly: deflateBound(&stream, UInt(bytes.count)))
    else { throw HopdError(.internalError, "the input is larger than zlib accepts") }
    var input = bytes
    var output = [UInt8](repeating: 0, count: Int(bound))
    let status = input.withUnsafeMutableBufferPointer { input in
      output.withUnsafeMutableBufferPointer { output in
        stream.next_in = input.baseAddress
        stream.avail_in = count
        stream.next_out = output.baseAddress
        stream.avail_out = bound
        return deflate(&stream, Z_FINISH)
      }
    }
    guard status == Z_STREAM_END else { throw HopdError(.internalError, "zlib did not finish") }
    return Array(output.prefix(Int(bound - stream.avail_out)))
  }

  /// Decompresses the bytes; throws if they are damaged, cut off, followed by others, or too large.
  package static func decompress(
    _ bytes: [UInt8], maximumBytes: Int = maximumBytes, at place: Place = Place()
  ) throws(HopdError) -> [UInt8] {
    guard bytes.count <= maximumBytes, let count = UInt32(exactly: bytes.count) else {
      throw damaged("it has \(bytes.count) bytes; more than \(maximumBytes) are not read", place)
    }
    var stream = z_stream()
    guard inflateInit2_(&stream, -15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
      throw HopdError(.internalError, "zlib cannot be used", at: place)
    }
    defer { inflateEnd(&stream) }
    var input = bytes
    var result: [UInt8] = []
    // Grows with the actual output, so that a few bytes that claim gigabytes cost no more than the limit.
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    let problem: String? = input.withUnsafeMutableBufferPointer { input in
      stream.next_in = input.baseAddress
      stream.avail_in = count
      while true {
        let (status, left) = chunk.withUnsafeMutableBufferPointer { chunk in
          stream.next_out = chunk.baseAddress
          stream.avail_out = UInt32(truncatingIfNeeded: chunk.count)
          return (inflate(&stream, Z_NO_FLUSH), Int(stream.avail_out))
        }
        result += chunk.prefix(chunk.count - left)
        guard result.count <= maximumBytes else { return "it unpacks to more than \(maximumBytes) bytes" }
        switch status {
        case Z_STREAM_END: return stream.avail_in == 0 ? nil : "its end is followed by other bytes"
        case Z_OK: if stream.avail_in == 0 && left > 0 { return "it is truncated" }
        case Z_BUF_ERROR: return "it is truncated"
        default: return "it is not compressed as Core Data does it"
        }
      }
    }
    if let problem { throw damaged(problem, place) }
    return result
  }

  /// Returns Z_CONTENT for a store of that layout (docs/decisions/0012); nil for framework versions without it.
  ///
  /// A model that was read from a compiled form is written in that form, any other as Core Data would archive it.
  /// Throws if the model cannot be archived.
  package static func content(for schema: StoreSchema) throws(HopdError) -> [UInt8]? {
    guard schema.frameworkVersion >= firstFrameworkVersion else { return nil }
    let made = schema.model.cache.value(for: ContentKey(frameworkVersion: schema.frameworkVersion)) {
      Result { () throws(HopdError) in try make(for: schema) }
    }
    return try made.get()
  }

  private struct ContentKey: Hashable {
    let frameworkVersion: Int64
  }

  private static func make(for schema: StoreSchema) throws(HopdError) -> [UInt8] {
    let compiled: [UInt8]
    if let form = schema.model.compiledForm, form.starts(with: Array("bplist".utf8)) {
      compiled = form
    } else {
      compiled = try schema.model.archived(frameworkVersion: schema.frameworkVersion)
    }
    // The result is read back and compared: a copy of another version would be worse than none.
    let copy: ManagedObjectModel
    do {
      copy = try ModelReader.read(compiled: compiled, name: schema.model.name).model
    } catch {
      throw HopdError(
        .modelCacheLeftEmpty, "the copy of the model in the store is omitted: it could not be read again",
        cause: error, hint: "ignore this; apps have their own model")
    }
    let (found, wanted) = (copy.versionHashes, schema.model.versionHashes)
    let different = wanted.filter { found[$0.key] != $0.value }.keys.sorted()
    guard different.isEmpty, found.count == wanted.count else {
      throw HopdError(
        .modelCacheLeftEmpty, "the copy of the model in the store is omitted: read again, it would have other hashes",
        at: Place(entity: different.first), hint: "ignore this; apps have their own model")
    }
    return try compress(compiled)
  }

  /// The reason why a store of that layout has no copy of its model; nil if it has one, or no table for one.
  package static func remark(on schema: StoreSchema) -> HopdError? {
    do {
      _ = try content(for: schema)
      return nil
    } catch { return error }
  }

  static func damaged(_ message: String, _ place: Place, cause: (any Error)? = nil) -> HopdError {
    HopdError(
      .modelCacheDamaged, "the copy of the model in the store (Z_MODELCACHE) cannot be read: \(message)", at: place,
      cause: cause, hint: hint)
  }
}

extension StoreReader {
  /// Returns the compiled model in the store; nil if it has none (no table, no row, no content).
  package func modelCache() throws -> [UInt8]? {
    guard let content = try modelCacheContent() else { return nil }
    return try ModelCache.decompress(content)
  }

  /// Returns Z_CONTENT unchanged; nil if there is none.
  package func modelCacheContent() throws -> [UInt8]? {
    guard try schemaObjects().contains(where: { $0.type == "table" && $0.name == "Z_MODELCACHE" }) else { return nil }
    let table = qualified("Z_MODELCACHE")
    // The length is checked before the value is read: a hostile store may claim a gigabyte.
    let rows = try connection.rows(
      "SELECT typeof(\"Z_CONTENT\"), length(\"Z_CONTENT\") FROM \(table) LIMIT 2"
    ) { row in (type: row.text(at: 0) ?? "", bytes: row.integer(at: 1)) }
    guard let row = rows.first else { return nil }
    guard rows.count == 1 else { throw ModelCache.damaged("it has several rows", Place()) }
    switch row.type {
    case "null": return nil
    case "blob" where row.bytes == 0: return nil
    case "blob" where row.bytes <= ModelCache.maximumBytes: break
    case "blob":
      throw ModelCache.damaged("it has \(row.bytes) bytes; more than \(ModelCache.maximumBytes) are not read", Place())
    default: throw ModelCache.damaged("it contains a value of type \(row.type)", Place())
    }
    return try connection.rows("SELECT \"Z_CONTENT\" FROM \(table) LIMIT 1") { $0.blob(at: 0) }.first ?? nil
  }
}
