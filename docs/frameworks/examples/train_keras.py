import keras
from torch.utils.data import DataLoader

from slow import Slow
from stepwell.integrations.keras import StepwellCallback

model = keras.Sequential([keras.layers.Input((3, 32, 32)), keras.layers.Flatten(), keras.layers.Dense(512, "relu"),
                          keras.layers.Dense(10)])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(DataLoader(Slow(640), batch_size=32), validation_data=DataLoader(Slow(128), batch_size=32), epochs=2, verbose=0,
          callbacks=[StepwellCallback(batch_size=32), keras.callbacks.ModelCheckpoint("model.keras")])
