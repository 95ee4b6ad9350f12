/** What a newcomer wants to know, the pages that lead there from the README at the top, and the answer on the last. */
export interface NewcomerPath {
  readonly wants: string;
  /** Each has a link to the next, with the heading if one is given. */
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
    'Which rules must a message keep, and how many may I send at once?',
    'packages/contracts/README.md',
    /\| messages in a batch \| 100, and at least 1 \|/,
  ),
  from(
    'Where does a row of `events` get its columns?',
    'packages/events/README.md#where-a-row-gets-its-columns infra/clickhouse/schema',
    /CREATE TABLE IF NOT EXISTS events\b/,
  ),
  from(
    'What happens to players while Redis is away, and to what they send?',
    'services/gateway/README.md#how-it-fails',
    /\| Redis lost its keys /,
  ),
  from(
    'Redis is empty. What do I run, and what if that refuses?',
    'infra/redis/README.md#rebuild services/operator/src/rebuild/README.md',
    /That one command does everything/,
  ),
  from(
    'Why is no message stored twice when a writer is killed in the middle?',
    'services/event-writer/README.md#a-block-that-was-tried-before',
    /reads which offsets are stored/,
  ),
  from(
    'Two players were taken for one person. How do I part them?',
    'services/operator/src/identity/README.md#unlink-split-a-wrong-merge',
    /together they become one person/,
  ),
  from(
    'A player wants to be forgotten. What goes, and how can I show it?',
    'services/eraser/README.md#what-is-promised services/eraser/receipt-by-hand.md',
    /The fences exist/,
  ),
  from(
    'How do I connect to our own Kafka, with TLS and a login?',
    'infra/README.md#connections-to-the-stores',
    /`KAFKA_SASL_MECHANISM`/,
  ),
  from('Something does not serve in the night. What do I look at first?', 'infra/RUNBOOK.md', /npm run status/),
  from(
    'I add a table. What else must know of it?',
    'infra/clickhouse/README.md#a-new-table-or-column',
    /packages\/erasure\/src\/stores/,
  ),
  from(
    'What do you call a hold, a fence, a block?',
    'GLOSSARY.md',
    /\| hold \| from acceptance until the end of an erasure/,
  ),
  from(
    'Why does the project have a producer for Kafka of its own?',
    'infra/decisions/README.md infra/decisions/0003-topics-schemas-and-releases.md',
    /its own producer/,
  ),
];
