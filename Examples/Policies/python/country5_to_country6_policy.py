#!/usr/bin/env python3
"""Country5ToCountry6Policy: a country's numeric code of its continent becomes the Continent itself."""

import os
import sys

# Not needed where the module is installed (make install, or pip install ./python).
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../python"))

from hopd_policy import EntityMigrationPolicy, run


class Country5ToCountry6Policy(EntityMigrationPolicy):
    def create_destination_instances(self, source, mapping, manager):
        country = manager.insert_standard_instance(source)
        code = source["isoContinent"]
        if code is None:
            return
        continents = manager.table("continents")
        continent = continents[code]
        if continent is None:
            continent = manager.insert_new_object("Continent")
            continent["numericISO3166Code"] = code
            continents[code] = continent
        country["continent"] = continent


if __name__ == "__main__":
    run(Country5ToCountry6Policy)
