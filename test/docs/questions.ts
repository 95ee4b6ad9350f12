/** A newcomer's goal, the pages that lead from the root README to the answer, and a pattern that matches the answer. */
export interface NewcomerPath {
  readonly goal: string;
  /** Each page must link to the next page, including the heading anchor. */
  readonly path: readonly string[];
  readonly answer: RegExp;
}

const createPath = (goal: string, pages: string, answer: RegExp): NewcomerPath => ({
  goal,
  path: ['README.md', ...pages.split(' ')],
  answer,
});

export const NEWCOMER_PATHS: readonly NewcomerPath[] = [
  createPath(
    'How do I start everything on my machine, and how do I stop it?',
    'infra/local/README.md',
    /`npm run up`, `npm run down`/,
  ),
  createPath(
    'Which rules must a message follow, and how many may I send in one batch?',
    'packages/contracts/README.md',
    /\| messages in a batch \| 100 \(minimum 1\) \|/,
  ),
  createPath(
    'Where does a row of `events` get its columns?',
    'packages/events/README.md#where-a-row-gets-its-columns infra/clickhouse/schema',
    /CREATE TABLE IF NOT EXISTS events\b/,
  ),
  createPath(
    'What happens to players and their messages while Redis is unavailable?',
    'services/gateway/README.md#how-it-fails',
    /\| Redis lost its keys /,
  ),
  createPath(
    'Redis is empty. What do I run, and what if the command refuses to run?',
    'infra/redis/README.md#rebuild services/operator/src/rebuild/README.md',
    /This command restores all data in Redis/,
  ),
  createPath(
    'Why is no message stored twice when a writer is killed during a write?',
    'services/event-writer/README.md#a-block-that-was-tried-before',
    /reads which offsets are stored/,
  ),
  createPath(
    'Two players were merged by mistake. How do I split them?',
    'services/operator/src/identity/README.md#unlink-split-a-wrong-merge',
    /selected identities become a separate person/,
  ),
  createPath(
    'A player requests erasure. What is deleted, and how can I prove it?',
    'services/eraser/README.md#what-is-promised services/eraser/receipt-by-hand.md',
    /The fences exist/,
  ),
  createPath(
    'How do I connect to our own Kafka, with TLS and a login?',
    'infra/README.md#connections-to-the-stores',
    /`KAFKA_SASL_MECHANISM`/,
  ),
  createPath('A process is down at night. What do I check first?', 'infra/RUNBOOK.md', /npm run status/),
  createPath(
    'How do I install the next release while events arrive, and until when can I roll back?',
    'infra/UPGRADE.md',
    /A rollback is possible until/,
  ),
  createPath(
    'I add a table. Where else must I register it?',
    'infra/clickhouse/README.md#a-new-table-or-column',
    /packages\/erasure\/src\/stores/,
  ),
  createPath(
    'What are a hold, a fence and a block?',
    'GLOSSARY.md',
    /\| hold \| a marker that delays new links .* until the erasure ends/,
  ),
  createPath(
    'Why does the project have its own Kafka producer?',
    'infra/decisions/README.md infra/decisions/0003-topics-schemas-and-releases.md',
    /its own producer/,
  ),
];
