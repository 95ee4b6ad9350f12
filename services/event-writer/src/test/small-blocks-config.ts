interface ConfigModule {
  readConfig(environment: Record<string, string | undefined>): Record<string, unknown>;
}

const { readConfig: readSafe }: ConfigModule = await import(new URL(import.meta.url).searchParams.get('of') ?? '');

const BLOCK_SETTINGS = ['BLOCK_ROWS_MAX', 'BLOCK_BYTES_MAX', 'BLOCK_AGE_MAX_MS'] as const;

/** Replaces the writer's function of the same name, so that blocks may have any size. */
export function readConfig(environment: Record<string, string | undefined>): Record<string, unknown> {
  const own = { ...environment };
  const given = BLOCK_SETTINGS.flatMap((name) => (own[name] === undefined ? [] : [[name, Number(own[name])] as const]));
  for (const name of BLOCK_SETTINGS) delete own[name];
  return { ...readSafe(own), ...Object.fromEntries(given) };
}
