# about: a watch whose models are Swift source, inside the hardened unit: a store migrated, a stage of the app refused until a stages file takes its place, an edit taken in, a syntax error named
# needs: systemd
if [ ! -x /usr/lib/hopd/hopctl-swiftdata-reader ]; then
    skip 'the reader of Swift source is not built: make swiftdata'
fi
rm -r "$MODEL"
MODEL=$MODELS/App NEW=SchemaV2
source_of() { # STAGE [MORE]
    mkdir -p "$MODEL"
    cat <<S >"$MODEL/Models.swift.new"
import SwiftData
enum SchemaV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Trip.self] }
  @Model final class Trip { var name: String = ""; var start: Date? }
}
enum SchemaV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Trip.self] }
  @Model final class Trip { var name: String = ""; var start: Date?; var nights: Int = 1 }
}
${2-}
enum Plan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [SchemaV1.self, SchemaV2.self${3-}] }
  static var stages: [MigrationStage] { [.$1(fromVersion: SchemaV1.self, toVersion: SchemaV2.self${4-})${5-}] }
}
S
    mv "$MODEL/Models.swift.new" "$MODEL/Models.swift"
}
source_of lightweight
configure
make_store "$STORES/a.store" SchemaV1 20 1
start
wait_migrated "$STORES/a.store"
plain_check "$STORES/a.store"

# The app's code is not passed over in silence.
source_of custom '' '' ', willMigrate: nil, didMigrate: nil'
make_store "$STORES/b.store" SchemaV1 20 2
before=$(sha256sum <"$STORES/b.store")
systemctl reload hopd || fail 'reload'
refused() { journalctl -q -o cat SYSLOG_IDENTIFIER=hopd | grep -q 'runs code of the app'; }
wait_for 60 'the refusal of a store that passes the stage' refused
same 'the refused store' "$before" "$(sha256sum <"$STORES/b.store")"
printf '[[stage]]\nfrom = "SchemaV1"\nto = "SchemaV2"\n' >"$MODEL/App.hopstages.toml"
chmod 644 "$MODEL/App.hopstages.toml"
systemctl reload hopd || fail 'reload'
wait_migrated "$STORES/b.store"

# An edit of the source is another version, and a syntax error is named with its place while the old models stay.
V3='enum SchemaV3: VersionedSchema {
  static let versionIdentifier = Schema.Version(3, 0, 0)
  static var models: [any PersistentModel.Type] { [Trip.self] }
  @Model final class Trip { var name: String = ""; var start: Date?; var nights Int = 1 }
}'
STAGE=', .lightweight(fromVersion: SchemaV2.self, toVersion: SchemaV3.self)'
source_of lightweight "$V3" ', SchemaV3.self' '' "$STAGE"
out=$(hopctl check-config 2>&1) && fail "check-config accepts a syntax error: $out"
matches 'the syntax error' 'Models\.swift:15:[0-9]+.*syntax error' "$out"
NEW=SchemaV3
V3=${V3/nights Int = 1/nights: Int = 1; var note: String?}
source_of lightweight "$V3" ', SchemaV3.self' '' "$STAGE"
systemctl reload hopd || fail 'reload'
wait_migrated "$STORES/a.store"
wait_migrated "$STORES/b.store"
