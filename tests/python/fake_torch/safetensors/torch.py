def save_file(tensors, path):
    return path


def save_model(model, path):
    return save_file(vars(model), path)


def load_file(path):
    return path


def load_model(model, path):
    return load_file(path)
