import { TOPICS } from '@playline/contracts';
import { applyTopics } from '@playline/infra/kafka';
import { endsOf } from '../world/end-check.ts';
import { toSeconds } from '../world/report.ts';
import type { Scenario, Trial } from '../world/trial.ts';
import { waitFor } from '../world/wait.ts';

/** Adds one partition to the topics that can grow. @returns the number of the new partition */
async function addPartition({ world }: Trial): Promise<number> {
  const { kafka: brokers, registry } = world.stack.file;
  const partition = (await endsOf(world, TOPICS.messages.name)).size;
  const target = { brokers, registry, prefix: world.deployment.topicPrefix, partitions: partition + 1 };
  await waitFor('the partition is added', async () => (await applyTopics(target)).changed.length > 0);
  return partition;
}

export const deploymentGrows: Scenario = {
  fault: 22,
  title: 'every record has one row if a partition, a gateway, a writer and a linker are added under load',
  tried: 'a partition, a gateway, a writer and a linker are added under load',
  run: async (trial) => {
    const { world, random } = trial;
    const first = await trial.start('gateway');
    const traffic = trial.openTraffic([first], { pauseMaxMs: 15 });
    await traffic.awaitBatches(random.integer(5, 25));
    const partition = await addPartition(trial);
    // A gateway that is started afterwards uses the partition immediately, and others after a minute.
    traffic.redirect([first, await trial.start('gateway')]);
    const topic = world.deployment.topicPrefix + TOPICS.messages.name;
    const endOf = async () => (await endsOf(world, TOPICS.messages.name)).get(partition) ?? 0;
    await waitFor('the new partition has records', async () => (await endOf()) > 0);
    const filledAt = performance.now();
    const committed = async () => (await world.log.committed(world.groupOf('event-writer'), topic)).get(partition) ?? 0;
    await waitFor('a writer reads the new partition', async () => (await committed()) > 0);
    const readMs = performance.now() - filledAt;
    const added = [await trial.launch('event-writer'), await trial.launch('identity-linker')];
    await Promise.all(added.map((child) => child.whenReady()));
    await traffic.awaitBatches(20);
    await traffic.close();
    return { 'records in the new partition': await endOf(), 'read after s': toSeconds(readMs) };
  },
};
