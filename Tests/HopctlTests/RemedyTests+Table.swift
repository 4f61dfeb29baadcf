// The table of RemedyTests: what is provoked, what the hint says, what is typed.

extension RemedyTests {
  static let all = stores + models + mappings + backups + checks + fleets + commandLines

  private static let stores: [Remedy] = [
    Remedy(
      "store-newer", "store a.sqlite 'Zoo 10'", "hopctl migrate a.sqlite ${zoo[@]} --to Zoo", says: "--allow-older",
      typed: "hopctl migrate a.sqlite ${zoo[@]} --to Zoo --allow-older"),
    Remedy(
      "missing-required-value", #"books "$(book "")" "$(book "<attribute name='pages' attributeType='String'/>")""#,
      "hopctl migrate b.sqlite --models B.xcdatamodeld", says: "--invalid-rows skip",
      typed: "hopctl migrate b.sqlite --models B.xcdatamodeld --invalid-rows skip"),
    Remedy(
      "missing-required-value",
      #"""
      shelves() { printf "<entity name='Book'><relationship name='shelf' %s maxCount='1' destinationEntity='Shelf' \
      inverseName='books' inverseEntity='Shelf'/></entity><entity name='Shelf'><relationship name='books' \
      optional='YES' toMany='YES' destinationEntity='Book' inverseName='shelf' inverseEntity='Book'/></entity>" "$1"; }
      books "$(shelves "optional='YES'")" "$(shelves "minCount='1'")"; sqlite3 b.sqlite "UPDATE ZBOOK SET ZSHELF = NULL"
      """#, "hopctl migrate b.sqlite --models B.xcdatamodeld", says: "--invalid-rows",
      typed: "hopctl migrate b.sqlite --models B.xcdatamodeld --invalid-rows skip"),
    Remedy(
      "output-exists", "store a.sqlite; store b.sqlite", "hopctl migrate a.sqlite ${zoo[@]} --output b.sqlite",
      says: "choose another name", typed: "hopctl migrate a.sqlite ${zoo[@]} --output c.sqlite"),
    Remedy(
      "already-exists", "store a.sqlite", "hopctl create a.sqlite ${zoo[@]} --model-version Zoo",
      says: "pass another path", typed: "hopctl create b.sqlite ${zoo[@]} --model-version Zoo"),
    Remedy(
      "cannot-fill",
      #"""
      version B.xcdatamodeld/B.xcdatamodel "<entity name='Book'><attribute name='flag' attributeType='Boolean'/>\
      <uniquenessConstraints><uniquenessConstraint><constraint value='flag'/></uniquenessConstraint>\
      </uniquenessConstraints></entity>"
      """#, "hopctl create b.sqlite --models B.xcdatamodeld --model-version B --rows 9", says: "--rows",
      typed: "hopctl create b.sqlite --models B.xcdatamodeld --model-version B --rows 2"),
    Remedy(
      "history-not-supported", "store a.sqlite; history a.sqlite", "hopctl migrate a.sqlite ${zoo[@]} --history refuse",
      says: "--history clear", typed: "hopctl migrate a.sqlite ${zoo[@]} --history clear"),
    Remedy(
      "history-cleared", "store a.sqlite; history a.sqlite", "hopctl plan a.sqlite ${zoo[@]} --history clear",
      says: #"`history = "refuse"`"#, typed: "hopctl plan a.sqlite ${zoo[@]} --history refuse",
      next: "history-not-supported"),
    Remedy(
      "cloudkit-not-supported",
      #"""
      store a.sqlite; history a.sqlite
      sqlite3 a.sqlite "CREATE TABLE ANSCKRECORDMETADATA (Z_PK INTEGER PRIMARY KEY);
        INSERT INTO Z_PRIMARYKEY VALUES (17012, 'NSCKRecordMetadata', 0, 0)"
      """#, "hopctl migrate a.sqlite ${zoo[@]}", says: "--cloudkit migrate",
      typed: "hopctl migrate a.sqlite ${zoo[@]} --cloudkit migrate", next: "cloudkit-not-supported"),
    Remedy(
      "xml-store",
      #"""
      hashes=$(hopctl model hash Zoo.xcdatamodeld --json | python3 -c 'import base64, json, sys
      for version in json.load(sys.stdin)["versions"]:
        for name, hash in sorted(version["entityVersionHashes"].items()) if version["name"] == "Zoo" else []:
          print("<key>%s</key><data>%s</data>" % (name, base64.b64encode(bytes.fromhex(hash)).decode()))')
      printf '<?xml version="1.0"?>\n<!DOCTYPE database SYSTEM "file:///System/Library/DTDs/CoreData.dtd">\n%s%s%s\n' \
        '<database><databaseInfo><version>134481920</version><UUID>8D2A9C31-5B1E-4C36-9A0F-1B2C3D4E5F60</UUID>' \
        '<nextObjectID>106</nextObjectID><metadata><plist version="1.0"><dict>' \
        "<key>NSPersistenceFrameworkVersion</key><integer>641</integer>\
      <key>NSStoreModelVersionHashes</key><dict>$hashes</dict></dict></plist></metadata>\
      </databaseInfo><object type=\"KEEPER\" id=\"z102\"></object></database>" >old.xml
      """#, "hopctl migrate old.xml ${zoo[@]}", says: "--models Zoo.xcdatamodeld --output NEW.sqlite",
      typed: "hopctl migrate old.xml ${zoo[@]} --output NEW.sqlite"),
    Remedy(
      "dump-incomplete", #"store a.sqlite; sqlite3 a.sqlite "UPDATE ZANIMAL SET Z_ENT = 77 WHERE Z_PK = 1""#,
      "hopctl dump a.sqlite ${zoo[@]}", says: "`hopctl verify`", typed: "hopctl verify a.sqlite ${zoo[@]}",
      next: "checks-failed"),
    Remedy(
      "not-found", "store a.sqlite",
      "HOPD_STATE_DIRECTORY=/proc/nothing hopctl migrate a.sqlite ${zoo[@]}", says: "--state-directory DIR",
      typed: #"hopctl migrate a.sqlite ${zoo[@]} --state-directory "$FOLDER/mine""#),
  ]

  private static let models: [Remedy] = [
    Remedy(
      "no-models", "store a.sqlite", "hopctl migrate a.sqlite", says: "pass --models ",
      typed: "hopctl migrate a.sqlite ${zoo[@]}"),
    Remedy(
      "no-current-version", "store a.sqlite; rm Zoo.xcdatamodeld/.xccurrentversion",
      "hopctl migrate a.sqlite ${zoo[@]}",
      says: "--to VERSION", typed: "hopctl migrate a.sqlite ${zoo[@]} --to 'Zoo 10'"),
    Remedy(
      "ambiguous-model", "store a.sqlite; cp -r Zoo.xcdatamodeld Twin.xcdatamodeld",
      "hopctl migrate a.sqlite ${zoo[@]} --models Twin.xcdatamodeld",
      says: "pass only one of these models with --models",
      typed: "hopctl migrate a.sqlite ${zoo[@]}"),
    Remedy(
      "version-order", "store a.sqlite", "hopctl migrate a.sqlite ${zoo[@]} --order 'Zoo 2' Zoo",
      says: "Or declare none: `hopctl model list`",
      typed: "hopctl model list Zoo.xcdatamodeld && hopctl migrate a.sqlite ${zoo[@]}"),
    Remedy(
      "own-model-unused",
      "store a.sqlite; mkdir Old.xcdatamodeld; cp -r 'Zoo.xcdatamodeld/Zoo 10.xcdatamodel' Old.xcdatamodeld/",
      "hopctl migrate a.sqlite --models Old.xcdatamodeld", says: "--models STORE --models NEXT",
      typed: "hopctl migrate a.sqlite --models a.sqlite --models 'Old.xcdatamodeld/Zoo 10.xcdatamodel'"),
    Remedy(
      "rows-forbid-inference",
      #"books "$(book "$(pages 'Integer 32')")" "$(book "$(size)$(pages 'Integer 32' "elementID='other'")")""#,
      "hopctl migrate b.sqlite --models B.xcdatamodeld", says: "--rename Book.pages=pages",
      typed: "hopctl migrate b.sqlite --models B.xcdatamodeld --rename Book.pages=pages"),
    Remedy(
      "direct-way-keeps",
      #"books "$(book "$(pages 'Integer 32')")" "$(book "")" "$(book "$(size)$(pages 'Integer 32')")""#,
      "hopctl plan b.sqlite --models B.xcdatamodeld", says: "--route direct",
      typed: "hopctl plan b.sqlite --models B.xcdatamodeld --route direct"),
    Remedy(
      "no-route",
      #"""
      books "$(book "$(pages 'Integer 32')")" "$(book "$(size)$(pages 'Integer 32')")" "$(book "$(size)$(pages Date)")"
      """#, "hopctl migrate b.sqlite --models B.xcdatamodeld", says: "`hopctl plan STORE --models … --to VERSION`",
      typed: "hopctl plan b.sqlite --models B.xcdatamodeld --to 'B 2'"),
    Remedy(
      "no-route",
      #"""
      cp -r "$EXAMPLES/Stages" .; bundle=Stages/Trips.xcdatamodeld
      cp -r "$bundle/Trips 2.xcdatamodel" "$bundle/Trips 3.xcdatamodel"; current $bundle 'Trips 3'
      more='<attribute name="more" optional="YES" attributeType="String"\/>'
      sed -i "0,/<attribute /s//$more<attribute /" "$bundle/Trips 3.xcdatamodel/contents"
      hopctl create b.sqlite --models $bundle --model-version Trips --rows 20 >words
      """#, "hopctl plan b.sqlite --models Stages --route direct", says: "remove --route",
      typed: "hopctl plan b.sqlite --models Stages"),
    Remedy(
      "stages-invalid",
      #"""
      cp -r "$EXAMPLES/Stages" .
      hopctl create b.sqlite --models Stages/Trips.xcdatamodeld --model-version Trips --rows 20 >words
      """#, "hopctl plan b.sqlite --models Stages --order 'Trips 2' Trips", says: "or the order (--order",
      typed: "hopctl plan b.sqlite --models Stages"),
    Remedy(
      "inference-off", "watch s 'infer = false'; store s/a.sqlite", "hopctl plan s/a.sqlite --config hopd.toml",
      says: "`infer = true`",
      typed: "sed -i 's/infer = false/infer = true/' hopd.toml; hopctl plan s/a.sqlite --config hopd.toml"),
  ]

  private static let mappings: [Remedy] = [
    Remedy(
      "unmapped-entities", "store a.sqlite; mapping maps/a.hopmap.toml Zoo 'Zoo 2' Animal Bird",
      "hopctl migrate a.sqlite ${zoo[@]} --mappings maps --to 'Zoo 2'", says: "--unmapped-entities drop",
      typed: "hopctl migrate a.sqlite ${zoo[@]} --mappings maps --to 'Zoo 2' --unmapped-entities drop"),
    Remedy(
      "mapping-ambiguous",
      #"""
      store a.sqlite; for name in a b; do mapping maps/$name.hopmap.toml Zoo 'Zoo 2' Animal Bird Keeper; done
      sed -i "0,/destination = \"Animal\"/s//&\nattributes.name = \"'x'\"/" maps/b.hopmap.toml
      """#, "hopctl migrate a.sqlite ${zoo[@]} --mappings maps", says: "choose one with --mappings",
      typed: "hopctl migrate a.sqlite ${zoo[@]} --mappings maps/a.hopmap.toml"),
    Remedy(
      "mapping-ambiguous",
      "mapping m.hopmap.toml Zoo 'Zoo 2' Animal Bird Keeper; cp -r Zoo.xcdatamodeld Twin.xcdatamodeld",
      "hopctl mapping show m.hopmap.toml ${zoo[@]} --models Twin.xcdatamodeld",
      says: "pass one with --models: Zoo.xcdatamodeld", typed: "hopctl mapping show m.hopmap.toml ${zoo[@]}"),
    Remedy(
      "mapping-remark", "store a.sqlite; mapping m.hopmap.toml Zoo 'Zoo 10' Animal Bird Keeper",
      "hopctl plan a.sqlite ${zoo[@]} --mappings m.hopmap.toml", says: "--route shortest",
      typed: "hopctl plan a.sqlite ${zoo[@]} --mappings m.hopmap.toml --route shortest"),
    Remedy(
      "text-mapping-invalid", "store a.sqlite; echo x >m.hopmap.toml",
      "hopctl plan a.sqlite ${zoo[@]} --mappings m.hopmap.toml", says: "`hopctl mapping infer`",
      typed: """
        rm m.hopmap.toml; hopctl mapping infer Zoo.xcdatamodeld Zoo 'Zoo 2' --output m.hopmap.toml
        hopctl plan a.sqlite ${zoo[@]} --mappings m.hopmap.toml
        """),
    Remedy(
      "policy-not-bound",
      #"cp -r "$EXAMPLES/Books" .; hopctl create b.sqlite --models Books --model-version Books --rows 20 >words"#,
      "hopctl migrate b.sqlite --models Books --invalid-rows quarantine", says: "--policy BookToBookPolicy=COMMAND",
      typed: """
        hopctl migrate b.sqlite --models Books --invalid-rows quarantine \
        --policy BookToBookPolicy=Books/book_to_book.py
        """),
  ]

  private static let backups: [Remedy] = [
    Remedy(
      "not-found", "store a.sqlite", "hopctl restore a.sqlite", says: "hopctl backups /",
      typed: #"hopctl backups "$FOLDER""#),
    Remedy(
      "usage", "migrated a.sqlite", "hopctl restore a.sqlite", says: "pass --yes",
      typed: "hopctl restore a.sqlite --yes"),
    Remedy(
      "not-a-store", "mkdir x; migrated x/a.sqlite", "hopctl restore x --yes", says: "hopctl backups /",
      typed: #"hopctl backups "$FOLDER/x""#),
    Remedy(
      "not-found", "mkdir x", "hopctl backups nothing.sqlite", says: "hopctl backups DIR", typed: "hopctl backups x"),
    Remedy(
      "other-store", "store a.sqlite", "hopctl restore a.sqlite --yes --backup a.sqlite", says: "hopctl backups /",
      typed: #"hopctl backups "$FOLDER/a.sqlite""#),
    Remedy(
      "other-store",
      #"""
      migrated a.sqlite; store b.sqlite
      sqlite3 b.sqlite "UPDATE Z_METADATA SET Z_UUID = '11111111-1111-1111-1111-111111111111'"
      hopctl migrate b.sqlite "${zoo[@]}" >words 2>&1
      """#, #"hopctl restore a.sqlite --yes --backup "$(echo .b.sqlite.hopd-backups/*/b.sqlite)""#, says: "--anyway",
      typed: #"hopctl restore a.sqlite --yes --anyway --backup "$(echo .b.sqlite.hopd-backups/*/b.sqlite)""#),
    Remedy(
      "record-unreadable", "migrated a.sqlite; echo x >\"$(echo .a.sqlite.hopd-backups/*/backup.json)\"",
      "hopctl backups a.sqlite", says: "hopctl prune /",
      typed: #"hopctl prune "$(echo "$FOLDER"/.a.sqlite.hopd-backups/*)" --yes"#),
    Remedy(
      "record-unreadable", "migrated a.sqlite; echo x >\"$(echo .a.sqlite.hopd-backups/*/backup.json)\"",
      "hopctl backups a.sqlite", says: "hopctl restore /",
      typed: #"hopctl restore a.sqlite --yes --backup "$(echo "$FOLDER"/.a.sqlite.hopd-backups/*)""#),
    Remedy(
      "record-unreadable",
      "migrated a.sqlite; cd .a.sqlite.hopd-backups/*; mv a.sqlite old.sqlite",
      "hopctl backups a.sqlite", says: "hopctl restore /",
      typed: #"hopctl restore a.sqlite --yes --backup "$(echo .a.sqlite.hopd-backups/*/old.sqlite)""#),
    Remedy(
      "usage", "migrated a.sqlite", "hopctl prune a.sqlite --keep 0", says: "--dry-run",
      typed: "hopctl prune a.sqlite --keep 0 --dry-run && hopctl prune a.sqlite --keep 0 --yes"),
    Remedy(
      "usage", "migrated a.sqlite", "hopctl prune a.sqlite --yes", says: "pass --keep",
      typed: "hopctl backups a.sqlite && hopctl prune a.sqlite --keep 1 --yes"),
    Remedy(
      "checks-failed", #"migrated a.sqlite; sqlite3 a.sqlite "DROP INDEX ZANIMAL_ZKEEPER_INDEX""#,
      "hopctl verify a.sqlite ${zoo[@]}", says: "--repair`",
      typed: "hopctl migrate a.sqlite ${zoo[@]} --repair && hopctl verify a.sqlite ${zoo[@]}"),
    Remedy(
      "schema-mismatch", #"store a.sqlite; sqlite3 a.sqlite "DROP TABLE ZKEEPER""#,
      "hopctl migrate a.sqlite ${zoo[@]}", says: "--repair`", typed: "hopctl migrate a.sqlite ${zoo[@]} --repair"),
    Remedy(
      "checks-failed", #"migrated a.sqlite; sqlite3 a.sqlite "UPDATE Z_PRIMARYKEY SET Z_MAX = 1""#,
      "hopctl verify a.sqlite ${zoo[@]}", says: "--repair`",
      typed: "hopctl migrate a.sqlite ${zoo[@]} --repair && hopctl verify a.sqlite ${zoo[@]}"),
    Remedy(
      "store-damaged", "migrated a.sqlite; head -c 6000 a.sqlite >b; cat b >a.sqlite",
      "hopctl verify a.sqlite ${zoo[@]}", says: "hopctl restore",
      typed: "mv a.sqlite damaged; hopctl restore a.sqlite --yes && hopctl verify a.sqlite ${zoo[@]}"),
  ]

  private static let checks: [Remedy] = [
    Remedy(
      "not-found", "", "hopctl check Zoo.xcdatamodeld --scratch /proc/nothing", says: "--scratch DIR",
      typed: #"hopctl check Zoo.xcdatamodeld --scratch "$FOLDER""#),
    Remedy(
      "not-found", "", "hopctl check Zoo.xcdatamodeld --lock my.lock", says: "--freeze",
      typed: """
        hopctl check Zoo.xcdatamodeld --lock my.lock --freeze && hopctl check Zoo.xcdatamodeld --lock my.lock
        """),
    Remedy(
      "lock-invalid", "echo x >hop.lock", "hopctl check Zoo.xcdatamodeld", says: "--freeze",
      typed: "rm hop.lock; hopctl check Zoo.xcdatamodeld --freeze"),
    Remedy(
      "version-not-locked",
      """
      frozen; version 'Zoo.xcdatamodeld/Zoo 11.xcdatamodel' "<entity name='Keeper'/>"; current Zoo.xcdatamodeld 'Zoo 11'
      commit
      """, "hopctl check Zoo.xcdatamodeld --base HEAD", says: "--freeze",
      typed: "hopctl check Zoo.xcdatamodeld --freeze && hopctl check Zoo.xcdatamodeld --base HEAD"),
    Remedy(
      "shipped-version-renamed",
      "frozen; mv 'Zoo.xcdatamodeld/Zoo 2.xcdatamodel' 'Zoo.xcdatamodeld/Zoo 3.xcdatamodel'",
      "hopctl check Zoo.xcdatamodeld", says: "run --freeze to record the new name",
      typed: "hopctl check Zoo.xcdatamodeld --freeze"),
    Remedy(
      "shipped-model-renamed", "frozen; mv Zoo.xcdatamodeld Park.xcdatamodeld", "hopctl check Park.xcdatamodeld",
      says: "run --freeze to record the new name", typed: "hopctl check Park.xcdatamodeld --freeze"),
    Remedy(
      "shipped-order-changed", "frozen", "hopctl check Zoo.xcdatamodeld --order 'Zoo 2' Zoo 'Zoo 10'",
      says: "declare it with --order", typed: "hopctl check Zoo.xcdatamodeld --order Zoo 'Zoo 2' 'Zoo 10'"),
  ]

  private static let fleets: [Remedy] = [
    Remedy(
      "output-exists", "store a.sqlite; listed", "hopctl fleet scan . ${zoo[@]} --output list", says: "--resume",
      typed: "hopctl fleet scan . ${zoo[@]} --output list --resume"),
    Remedy(
      "bad-manifest", "store a.sqlite; : >empty", "hopctl fleet run --manifest empty ${zoo[@]} --results out.ndjson",
      says: "hopctl fleet scan DIR --output FILE",
      typed: """
        hopctl fleet scan . ${zoo[@]} --output list; hopctl fleet run --manifest list ${zoo[@]} --results out.ndjson
        """),
    Remedy(
      "bad-manifest", #"store a.sqlite; echo '{"x":1}' >list"#,
      "hopctl fleet run --manifest list ${zoo[@]} --results out.ndjson", says: "hopctl fleet scan",
      typed: """
        hopctl fleet scan . ${zoo[@]} --output list2; hopctl fleet run --manifest list2 ${zoo[@]} --results out.ndjson
        """),
    Remedy(
      "bad-manifest", "store a.sqlite; echo '{' >x", "hopctl fleet report x", says: "`hopctl fleet run --results`",
      typed: "hopctl fleet run . ${zoo[@]} --results out.ndjson; hopctl fleet report out.ndjson"),
    Remedy(
      "not-found", "store a.sqlite; mkdir out", "hopctl fleet report out", says: "`hopctl fleet run --results`",
      typed: "hopctl fleet run . ${zoo[@]} --results out/one.ndjson; hopctl fleet report out"),
  ]

  private static let commandLines: [Remedy] = [
    Remedy(
      "no-models", "", "hopctl check", says: "hopctl check Zoo.xcdatamodeld", typed: "hopctl check Zoo.xcdatamodeld"),
    Remedy(
      "usage", "", "hopctl model frobnicate", says: "`hopctl model --help`", typed: "hopctl model --help"),
    Remedy(
      "usage", "store a.sqlite", "hopctl info a.sqlite", says: "hopctl identify",
      typed: "hopctl identify a.sqlite ${zoo[@]}"),
    Remedy(
      "usage", "watch s; watch t; store a.sqlite", "hopctl plan a.sqlite --config hopd.toml", says: "--watch: ",
      typed: "hopctl plan a.sqlite --config hopd.toml --watch s"),
    Remedy(
      "usage", "", "hopctl set nothing", says: "hopctl set KEY VALUE",
      typed: #"hopctl set jobs 4 --socket "$FOLDER/none""#, next: "not-running"),
  ]
}
