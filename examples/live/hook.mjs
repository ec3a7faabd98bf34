// Puts the model that ALLM_MODEL names in the place of the scripted one, so that the examples run on it as they are.
import { register } from "node:module"
import { chosen } from "./models.mjs"

const model = chosen()
if (typeof model === "string") {
  console.error(model)
  process.exit(2)
}
if (model !== undefined) {
  // From here on the name is whole.
  process.env.ALLM_MODEL = `${model.provider}/${model.model}`
  register("./resolve.mjs", import.meta.url)
}
