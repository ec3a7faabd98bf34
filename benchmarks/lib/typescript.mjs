// Runs TypeScript sources by erasing their types and nothing else. The loader used for the examples also wraps each
// named function to keep its name, about 0.2 µs per closure, which is not part of the published code.
import { register } from "node:module"

register("./typescript-hooks.mjs", import.meta.url)
