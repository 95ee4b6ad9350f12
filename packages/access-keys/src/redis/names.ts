export type Names = ReturnType<typeof createNames>;

/** Names of the Redis keys of key records; `openRedisKeyStore` describes them. */
export function createNames(namespace: string) {
  return {
    record: (hash: string) => `${namespace}k:${hash}`,
    environment: (id: string) => `${namespace}k:environment:${id}`,
    project: (id: string) => `${namespace}k:project:${id}`,
    complete: `${namespace}k:complete`,
    turn: `${namespace}k:turn`,
    live: `${namespace}k:live`,
    list: `${namespace}k:list`,
    version: `${namespace}k:version`,
    changes: `${namespace}k:changes`,
  };
}
