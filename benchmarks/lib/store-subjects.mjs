// Where sessions and journals are kept, from the nearest to the farthest.
const fromSource = ["--import=./lib/typescript.mjs"]

const store = (name, what) => ({ name, what, module: `stores/${name}`, nodeOptions: fromSource })

export const storeSubjects = [
  store("none", "no journal, to compare with"),
  store("memory", "`layerMemory`: texts in a map"),
  store("files", "`layerFileSystem`: a file per version or call, flushed to the disk"),
  store("sqlite", "`@allm/sql` on a file, through libsql, each commit flushed to the disk"),
  store("postgres", "`@allm/sql` on a server on the same machine, as it is when nobody tunes it")
]
