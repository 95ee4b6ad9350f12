/** A newcomer's question, the pages that lead from the root README to the answer, and a pattern of the answer. */
export interface NewcomerPath {
  readonly wants: string;
  /** Each page links to the next page, at the given heading if there is one. */
  readonly path: readonly string[];
  readonly answer: RegExp;
}

const from = (wants: string, pages: string, answer: RegExp): NewcomerPath => ({
  wants,
  path: ['README.md', ...pages.split(' ')],
  answer,
});

export const NEWCOMER_PATHS: readonly NewcomerPath[] = [
  from(
    'How do I start everything on my machine, and how do I stop it?',
    'infra/local/README.md',
    /`npm run up`, `npm run down`/,
  ),
  from(
    'Which rules must a message follow, and how many may I send in one batch?',
    'packages/contracts/README.md',
    /\| messages in a batch \| 100, and at least 1 \|/,
  ),
  from(
    'Where does a row of `events` get its columns?',
    'packages/events/README.md#where-a-row-gets-its-columns infra/clickhouse/schema',
    /CREATE TABLE IF NOT EXISTS events\b/,
  ),
  from(
    'What happens to players and their messages while Redis is unavailable?',
    'services/gateway/README.md#how-it-fails',
    /\| Redis lost its keys /,
  ),
  from(
    'Redis is empty. What do I run, and what if that refuses?',
    'infra/redis/README.md#rebuild services/operator/src/rebuild/README.md',
    /This command restores all data in Redis/,
  ),
  from(
    'Why is no message stored twice when a writer is killed during a write?',
    'services/event-writer/README.md#a-block-that-was-tried-before',
    /reads which offsets are stored/,
  ),
  from(
    'Two players were merged by mistake. How do I split them?',
    'services/operator/src/identity/README.md#unlink-split-a-wrong-merge',
    /selected identities become a separate person/,
  ),
  from(
    'A player requests erasure. What is deleted, and how can I prove it?',
    'services/eraser/README.md#what-is-promised services/eraser/receipt-by-hand.md',
    /The fences exist/,
  ),
  from(
    'How do I connect to our own Kafka, with TLS and a login?',
    'infra/README.md#connections-to-the-stores',
    /`KAFKA_SASL_MECHANISM`/,
  ),
  from('A process is down at night. What do I check first?', 'infra/RUNBOOK.md', /npm run status/),
  from(
    'I add a table. Where else must I register it?',
    'infra/clickhouse/README.md#a-new-table-or-column',
    /packages\/erasure\/src\/stores/,
  ),
  from(
    'What are a hold, a fence and a block?',
    'GLOSSARY.md',
    /\| hold \| from acceptance until the end of an erasure/,
  ),
  from(
    'Why does the project have its own Kafka producer?',
    'infra/decisions/README.md infra/decisions/0003-topics-schemas-and-releases.md',
    /its own producer/,
  ),
];
