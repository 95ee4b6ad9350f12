import type { ClickHouseAccount } from './clickhouse-query.ts';
import { UnreachableError } from './command.ts';
import type { OperatorConfig } from './config.ts';
import { readStack } from './stack-file.ts';

/** Where the stores are that a command works with; each throws UnreachableError when nobody has told. */
export interface Addresses {
  redis(): string;
  kafka(): readonly string[];
  registry(): string;
  clickhouse(): ClickHouseAccount;
}

/**
 * The environment's addresses when it has any of them, else those of the stack that runs from `folder`. Never a mixture:
 * the log of one deployment and the Redis of another would be written to.
 */
export function createAddresses(config: OperatorConfig, folder: string): Addresses {
  const { KAFKA_BROKERS, SCHEMA_REGISTRY_URL, REDIS_URL, CLICKHOUSE_URL } = config;
  const isGiven = [KAFKA_BROKERS, SCHEMA_REGISTRY_URL, REDIS_URL, CLICKHOUSE_URL].some((value) => value !== undefined);
  const find = <T>(name: string, given: T | undefined, ofStack: () => T | undefined): T => {
    const value = isGiven ? given : ofStack();
    if (value !== undefined) return value;
    throw new UnreachableError(
      isGiven
        ? `${name} is not set, but other addresses are`
        : `no stack runs here: start it (npm run up) or set ${name}`,
    );
  };
  return {
    redis: () => find('REDIS_URL', REDIS_URL, () => readStack(folder).redis),
    kafka: () => find<readonly string[]>('KAFKA_BROKERS', KAFKA_BROKERS, () => readStack(folder).kafka),
    registry: () => find('SCHEMA_REGISTRY_URL', SCHEMA_REGISTRY_URL, () => readStack(folder).registry),
    clickhouse: () => find('CLICKHOUSE_URL', toAccount(config), () => readStack(folder).clickhouse),
  };
}

function toAccount(config: OperatorConfig): ClickHouseAccount | undefined {
  const {
    CLICKHOUSE_URL: url,
    CLICKHOUSE_USER: user,
    CLICKHOUSE_PASSWORD: password,
    CLICKHOUSE_DATABASE: database,
  } = config;
  return url === undefined ? undefined : { url, user, password, database };
}
