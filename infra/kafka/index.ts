export { allTopics, applyTopics, dropTopics, type TopicsApplied, type TopicsTarget } from './apply.ts';
export { patchKafkaTimer } from './timer.ts';
