/** Texts of a task's operator, and of a task's model. */
export const operate = {
  title: 'Operate',
  means: 'The account that proposed this task can add to the pool, stop the task, and withdraw the refund.',
  open: 'Operate this task…',
  notYours: 'Only the account that proposed this task can operate it:',
  fund: 'Add to the pool',
  fundMeans:
    'Each round can then pay an equal part more. The refund has the parts of rounds that are not played. Pay that a played round does not earn is burnt.',
  fundOver: 'Everybody has joined, so the pool is fixed.',
  fundEnded: 'The task has ended, and so has its pool.',
  room: (amount: string) =>
    `The aggregator’s bond allows at most ${amount} more: missing a round must cost the aggregator at least twice its pay for the round.`,
  tooMuch: (amount: string) => `The aggregator’s bond is too small for that. Add at most ${amount} tokens.`,
  payRole: 'A round pays at most',
  fundGo: 'Approve and add',
  stop: 'Stop the task',
  stopOpen: 'Stop…',
  stopJoining: 'The task ends at once. Everybody can release their bonds, and the whole pool is refunded to you.',
  stopRunning: (last: number) =>
    `The present round is finished and paid as usual. Round ${last} is the last. After it, the parts of the pool for rounds that were not played are refunded to you. Pay that played rounds did not earn is burnt.`,
  stopForGood: 'This cannot be undone.',
  stopping: (last: number) => `You have stopped it. Round ${last} is the last.`,
  stopEnded: 'It has ended.',
  refund: 'Refund',
  refundMeans: 'From the pools of all your ended tasks.',
  refundable: 'Yours to withdraw',
  refundGo: 'Withdraw',
  model: 'The model',
  modelMeans:
    'The chain and the artifact store define the model. The command line derives it, as every hospital does, and checks each round first. Anybody can do this.',
  modelSources:
    'deployment.json is the address book of the contracts. artifacts is a folder or mirror of the artifact store.',
  modelSoFar: 'The task is not over, so this is the model after its last finished round.',
  modelFiles: 'Files of the model',
  modelFile: {
    'model.safetensors': 'the parameters',
    'model.json': 'a description of the parameters',
    'model-card.md': 'the model card: data, privacy, scores',
    'proof.json': 'the checks of each round',
    'program.json': 'the program: the model’s graph',
    'program.safetensors': 'the weights that its author gave the program',
    'program-frozen.safetensors': 'its tensors that no hospital trains',
    'program-tokenizer.json': 'it makes tokens of texts',
    'model.onnx': 'the model by itself, for onnxruntime',
    'report.json': 'what it is worth: an evaluation, with the nodes’ signed figures',
    'report.html': 'the same as a page',
    'report.svg': 'the same as a picture',
  },
  modelAfter: (round: number, rounds: number, verified: boolean) =>
    `After round ${round} of ${rounds}. ${verified ? 'Each round was checked when the model was derived.' : 'NOT VERIFIED: some checks fail. See the model card.'}`,
  modelDoubt: 'You do not have to trust this server. To derive the model from the chain yourself, run:',
  modelNone: 'No training round is over yet, so there is no model.',
}
