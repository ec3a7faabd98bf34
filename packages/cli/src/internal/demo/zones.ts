/**
 * The time zones this machine knows, and the places by which people name them.
 */

/** The IANA names, such as `Europe/Oslo`. */
export const zones: ReadonlyArray<string> = ["UTC", ...Intl.supportedValuesOf("timeZone")]

// Cities and countries that are no IANA name of their own.
const others: { readonly [place: string]: string } = {
  "san francisco": "America/Los_Angeles",
  "seattle": "America/Los_Angeles",
  "california": "America/Los_Angeles",
  "boston": "America/New_York",
  "washington": "America/New_York",
  "new york city": "America/New_York",
  "nyc": "America/New_York",
  "montreal": "America/Toronto",
  "rio": "America/Sao_Paulo",
  "munich": "Europe/Berlin",
  "münchen": "Europe/Berlin",
  "hamburg": "Europe/Berlin",
  "germany": "Europe/Berlin",
  "köln": "Europe/Berlin",
  "cologne": "Europe/Berlin",
  "geneva": "Europe/Zurich",
  "zürich": "Europe/Zurich",
  "barcelona": "Europe/Madrid",
  "milan": "Europe/Rome",
  "italy": "Europe/Rome",
  "france": "Europe/Paris",
  "norway": "Europe/Oslo",
  "kyiv": "Europe/Kiev",
  "bergen": "Europe/Oslo",
  "japan": "Asia/Tokyo",
  "osaka": "Asia/Tokyo",
  "kyoto": "Asia/Tokyo",
  "tōkyō": "Asia/Tokyo",
  "beijing": "Asia/Shanghai",
  "mumbai": "Asia/Kolkata",
  "delhi": "Asia/Kolkata",
  "bangalore": "Asia/Kolkata",
  "kolkata": "Asia/Kolkata",
  "india": "Asia/Kolkata",
  "são paulo": "America/Sao_Paulo",
  "utc": "UTC",
  "gmt": "UTC"
}

const isPlace = (zone: string): boolean => zone.includes("/") && !zone.startsWith("Etc/")

const cityOf = (zone: string): string => zone.slice(zone.lastIndexOf("/") + 1).replaceAll("_", " ").toLowerCase()

/** Zones by the places people say, in lower case. */
export const places: ReadonlyMap<string, string> = new Map([
  ...zones.filter(isPlace).flatMap((zone): ReadonlyArray<readonly [string, string]> => [
    [zone.toLowerCase(), zone],
    [cityOf(zone), zone]
  ]),
  ...Object.entries(others)
])
