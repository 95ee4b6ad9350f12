// Describes the processes of the chart from the code, for infra/helm/playline/services.yaml.
import { readFileSync } from 'node:fs';
import { SERVICES, type ServiceEntry } from '@playline/infra/local';
import { clickhouseTableSettings, kafkaSettings, registrySettings } from '@playline/runtime';
import { z } from 'zod';
import { readSettings } from '../service-settings.ts';

const SECRET =
  /PASSWORD$|SECRET$|^IDENTITY_PEPPER$|^SIGNER_|^CURSOR_KEYS$|^REDIS_URL$|^CHAIN_NODES$|^ANALYST_ACCOUNTS$|^SMTP_URL$/;

/** The settings that infra/kafka/main.ts reads without a schema. */
const topicSettings = Object.fromEntries(
  [
    ...readFileSync(new URL('../../infra/kafka/main.ts', import.meta.url), 'utf8').matchAll(
      /optionalCount\('(\w+)'\)|process\.env\.(\w+)/g,
    ),
  ].map(([, count, text]) => [count ?? text, z.string().optional()]),
);

/** The set-up commands and the operator. `identity init` is an operator command. */
const COMMANDS: Record<string, { main: string; account?: string }> = {
  topics: { main: 'infra/kafka/main.ts' },
  tables: { main: 'infra/clickhouse/main.ts', account: 'operator' },
  operator: { main: 'services/operator/src/main.ts', account: 'operator' },
};

/** Returns the settings of each process, by the name of the process in the chart. */
export async function readAllSettings(): Promise<Map<string, z.ZodObject>> {
  const names = [...SERVICES.map(({ name }) => name), 'operator'];
  const services = await Promise.all(names.map(async (name) => [name, await readSettings(name)] as const));
  return new Map([
    ['topics', z.object({ ...kafkaSettings, ...registrySettings, ...topicSettings })],
    ['tables', z.object(clickhouseTableSettings)],
    ...services,
  ]);
}

/** Divides settings by whether a process starts without them. A ClickHouse account always has a password. */
function divide(shape: z.ZodRawShape, names: readonly string[]) {
  const isOptional = (name: string) =>
    name !== 'CLICKHOUSE_PASSWORD' && (shape[name] as z.ZodType).safeParse(undefined).success;
  return { required: names.filter((name) => !isOptional(name)), optional: names.filter(isOptional) };
}

function describe(name: string, { shape }: z.ZodObject) {
  const names = Object.keys(shape).sort();
  const isSecret = (setting: string) => SECRET.test(setting);
  const service: ServiceEntry | undefined = SERVICES.find((each) => each.name === name);
  const { HTTP_PORT: port } = shape;
  const { main = `services/${name}/src/main.ts`, account = service?.account ?? 'writer' } = COMMANDS[name] ?? {};
  return {
    main,
    ...(service?.nodeOptions && { nodeOptions: service.nodeOptions }),
    ...(service?.environment && { environment: service.environment }),
    ...(port instanceof z.ZodType && { port: port.parse(undefined) }),
    ...('CLICKHOUSE_USER' in shape && { account }),
    ...(service?.reads && { topics: service.reads.map((topic) => topic.name) }),
    settings: divide(
      shape,
      names.filter((setting) => !isSecret(setting)),
    ),
    secrets: divide(shape, names.filter(isSecret)),
  };
}

export type Process = ReturnType<typeof describe>;

export async function describeProcesses(): Promise<Record<string, Process>> {
  const settings = await readAllSettings();
  return Object.fromEntries([...settings].map(([name, schema]) => [name, describe(name, schema)]));
}
