// Puts a real provider in the place of the scripted model, so that the examples run on it as they are:
// `ALLM_PROVIDER=google node --conditions=@allm/source --import tsx --import ./examples/live/hook.mjs examples/src/03-single-tool.ts`.
import { register } from "node:module"

register("./resolve.mjs", import.meta.url)
